# Wall clock, sleep and randomness outside src/base. What needs them gets a settle::environment, and can then be
# run under a seed. Tests, the demo, the benchmarks and the documentation's programs are free to use them.
FNR == 1 { free = FILENAME ~ /^src\/base\/|_test\.cpp$|^(tests|demo|bench|docs|apps)\// }
free { next }
{
  line = $0
  sub(/\/\/.*/, "", line)
  sub(/auto sleep\(duration/, "", line)  # what a saga's body asks for: a row with a time, nothing that sleeps
  if (match(line, /system_clock::now|high_resolution_clock|sleep_for|sleep_until|random_device|mt19937|minstd_rand/) ||
      match(line, /(^|[^a-zA-Z0-9_.>])(usleep|nanosleep|sleep|srand|rand|random|getrandom|gettimeofday) ?\(/) ||
      match(line, /(^|[^a-zA-Z0-9_.>])time ?\((NULL|nullptr|0|&)/) ||
      match(line, /CLOCK_REALTIME/)) {
    printf "%s:%d: %s outside src/base; take it from the environment\n", FILENAME, FNR, substr(line, RSTART, RLENGTH)
    broken = 1
  }
}
END { exit broken }
