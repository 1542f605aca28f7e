/* Which connections count as one client: made-up addresses, no sockets. */
#include <arpa/inet.h>
#include <string.h>

#include "server/net/http_impl.h"
#include "tests/support/test.h"

static struct ifd_client client_of(const char *address)
{
    struct sockaddr_storage at = {.ss_family = strchr(address, ':') ? AF_INET6 : AF_INET};
    struct sockaddr_in *in = (struct sockaddr_in *)&at;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&at;
    bool is_in6 = at.ss_family == AF_INET6;
    REQUIRE(inet_pton(at.ss_family, address,
                      is_in6 ? (void *)&in6->sin6_addr : (void *)&in->sin_addr) == 1);
    *(is_in6 ? &in6->sin6_port : &in->sin_port) = htons((uint16_t)strlen(address)); /* any */
    return ifd_client_of(&at);
}

static void addresses_of_one_ipv6_network_are_one_client(void)
{
    static const struct {
        const char *one, *other;
        bool is_same;
    } cases[] = {
        {"2001:db8:1:2::1", "2001:db8:1:2::1", true},
        {"2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true},
        {"2001:db8:1:2::1", "2001:db8:1:3::1", false},
        {"2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:3::", false},
        {"fe80::1", "fe80::2", true},
        {"::1", "fe80::1", false},
        {"192.0.2.1", "192.0.2.1", true},
        {"192.0.2.1", "192.0.2.2", false},
        {"192.0.2.1", "193.0.2.1", false},
        /* IPv4-mapped addresses: the whole address counts, or all of IPv4 would be one client. */
        {"::ffff:192.0.2.1", "::ffff:192.0.2.1", true},
        {"::ffff:192.0.2.1", "::ffff:192.0.2.2", false},
        {"::ffff:192.0.2.1", "::1", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct ifd_client one = client_of(cases[i].one), other = client_of(cases[i].other);
        EXPECT(one.is_known && other.is_known);
        EXPECT((memcmp(&one, &other, sizeof(one)) == 0) == cases[i].is_same);
    }
}

static void unix_sockets_are_nobody_in_particular(void)
{
    const struct sockaddr_storage at = {.ss_family = AF_UNIX};
    EXPECT(!ifd_client_of(&at).is_known);
}

static void connections_are_counted_by_network_and_listener(void)
{
    static const char *const address[] = {"2001:db8:1:2::1", "2001:db8:1:2::2", "2001:db8:1:3::1",
                                          "192.0.2.1", "::ffff:192.0.2.1"};
    enum { COUNT = sizeof(address) / sizeof(address[0]) };
    struct ifd_http http = {0};
    struct ifd_listener data = {.http = &http}, metrics = {.http = &http};
    struct ifd_connection connection[COUNT + 1] = {0};
    for (size_t i = 0; i <= COUNT; i++) {
        connection[i] = (struct ifd_connection){.listener = i < COUNT ? &data : &metrics,
                                                .client = client_of(address[i % COUNT]),
                                                .next = http.connections};
        http.connections = &connection[i];
    }
    const struct {
        const char *address;
        uint32_t count;
    } cases[] = {
        {"2001:db8:1:2:aaaa::", 2}, {"2001:db8:1:3::9", 1}, {"2001:db8:1:4::1", 0},
        {"192.0.2.1", 1},           {"192.0.2.2", 0},       {"::ffff:192.0.2.1", 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct ifd_client client = client_of(cases[i].address);
        EXPECT_INT(ifd_connections_of(&data, &client), cases[i].count);
    }
    const struct ifd_client client = client_of("2001:db8:1:2::7");
    EXPECT_INT(ifd_connections_of(&metrics, &client), 1);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(addresses_of_one_ipv6_network_are_one_client),
        T(unix_sockets_are_nobody_in_particular),
        T(connections_are_counted_by_network_and_listener),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
