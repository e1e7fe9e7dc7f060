import unittest

from invoice.instalments import plan
from invoice.money import shown, split


class Splitting(unittest.TestCase):
    def test_an_even_amount_gives_equal_shares(self):
        self.assertEqual(split(900, 3), [300, 300, 300])

    def test_no_cent_is_lost(self):
        self.assertEqual(split(1000, 3), [334, 333, 333])
        self.assertEqual(sum(split(9999, 7)), 9999)

    def test_an_amount_has_at_least_one_part(self):
        with self.assertRaises(ValueError):
            split(100, 0)


class Showing(unittest.TestCase):
    def test_cents_have_two_digits(self):
        self.assertEqual(shown(1205), "EUR 12.05")

    def test_a_debt_has_its_sign_before_the_digits(self):
        self.assertEqual(shown(-50, "USD"), "USD -0.50")


class Instalments(unittest.TestCase):
    def test_each_month_has_its_line(self):
        self.assertEqual(plan(300, 2), ["month 1: EUR 1.50", "month 2: EUR 1.50"])
