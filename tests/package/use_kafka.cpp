// Opens the driver that the component promises. Nothing connects before the first call.
#include <settle/kafka.hpp>

int main() { return settle::kafka::open("kafka://nowhere.invalid") ? 0 : 1; }
