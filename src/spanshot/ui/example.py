"""The small example of the first-run screen. It can be finished in a minute."""

EXAMPLE = """\
Maria flies to Oslo on Friday with two colleagues.
The train from Rome to Milan leaves at nine on Monday.
We met Ahmed in Nairobi last Tuesday.
On Sunday, Chen takes the night bus from Lima to Cusco.
Nobody knew why the ferry was late.
Please book a room in Lisbon for Sofia from Thursday.
Kofi moved from Accra to Toronto in spring.
The meeting with Ingrid is on Wednesday in Bergen.
Breakfast is served from seven to ten.
Priya will visit Kyoto and Osaka before Saturday.
"""
"""One text per line; names, cities and days to mark."""
