// Opens the driver that the component promises. Nothing connects before the first command.
#include <settle/redis.hpp>

int main() { return settle::redis::open("redis://nowhere.invalid:6379/2")->name().empty() ? 1 : 0; }
