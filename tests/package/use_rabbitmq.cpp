// Opens the driver that the component promises. Nothing connects before the first call.
#include <settle/rabbitmq.hpp>

int main() { return settle::rabbitmq::open("amqp://nowhere.invalid/shop") ? 0 : 1; }
