"""Address syntax, and which addresses count as local."""

import unittest

from jax_plugins.ifrt_proxy_rs import _address


class Parse(unittest.TestCase):
    def test_accepts(self):
        rows = [
            # text, host, port, path, local
            ("grpc://127.0.0.1:5000", "127.0.0.1", 5000, None, True),
            ("grpc://127.8.9.10:1", "127.8.9.10", 1, None, True),
            ("grpc://localhost:65535", "localhost", 65535, None, True),
            ("grpc://[::1]:5000", "::1", 5000, None, True),
            ("grpc://dns:///localhost:80", "localhost", 80, None, True),
            ("grpc://ipv4:127.0.0.1:80", "127.0.0.1", 80, None, True),
            ("grpc://ipv6:[::1]:80", "::1", 80, None, True),
            ("grpc://unix:/run/Proxy.sock", None, None, "/run/Proxy.sock", True),
            ("grpc://unix:///run/proxy.sock", None, None, "/run/proxy.sock", True),
            ("grpc://unix:proxy.sock", None, None, "proxy.sock", True),
            ("grpc://10.0.0.1:80", "10.0.0.1", 80, None, False),
            ("grpc://0.0.0.0:80", "0.0.0.0", 80, None, False),
            ("grpc://tpu.example:80", "tpu.example", 80, None, False),
            ("grpc://localhost.example:80", "localhost.example", 80, None, False),
            ("grpc://127.0.0.1.example:80", "127.0.0.1.example", 80, None, False),
            ("grpc://[2001:db8::1]:80", "2001:db8::1", 80, None, False),
        ]
        for text, host, port, path, local in rows:
            with self.subTest(text):
                address = _address.parse(text)
                self.assertEqual((address.host, address.port, address.path), (host, port, path))
                self.assertEqual(address.is_local, local)
                self.assertEqual(address.text, text)

    def test_refuses_with_a_reason(self):
        rows = [
            ("", "does not start with grpc://"),
            ("127.0.0.1:80", "does not start with grpc://"),
            ("http://127.0.0.1:80", "not 'http'"),
            ("grpc://", "no port"),
            ("grpc://localhost", "no port"),
            ("grpc://[::1]", "no port"),
            ("grpc://:80", "no host"),
            ("grpc://::1:80", "square brackets"),
            ("grpc://[nonsense]:80", "not an IPv6 address"),
            ("grpc://localhost:", "'' is not a port"),
            ("grpc://localhost:0", "'0' is not a port"),
            ("grpc://localhost:65536", "'65536' is not a port"),
            ("grpc://localhost:-1", "'-1' is not a port"),
            ("grpc://localhost:٣", "is not a port"),
            ("grpc://localhost:8o", "'8o' is not a port"),
            ("grpc://127.0.0.1/evil:80", "not a host name"),
            ("grpc://a b:80", "not a host name"),
            ("grpc://unix:", "no path"),
            ("grpc://unix://relative", "no path"),
        ]
        for text, reason in rows:
            with self.subTest(text):
                with self.assertRaises(ValueError) as caught:
                    _address.parse(text)
                self.assertIn(reason, str(caught.exception))
                self.assertIn(_address.FORMS, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
