"""Made-up domains: templates and names from which labelled sentences without end can be drawn."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from spanshot.formats.inline import parse_inline
from spanshot.types import Sentence

JOINTS = (", and ", " because ", ", but ", "; then ", " while ", ". Also, ", " - ", ". In short: ")


@dataclass(frozen=True)
class Domain:
    """Sentences with gaps such as ``{city}``, and what may fill each gap."""

    templates: tuple[str, ...]
    names: dict[str, tuple[str, ...]]

    def sentence(self, rng: random.Random) -> Sentence:
        """A template with its gaps filled and marked; now and then two, joined."""
        template = rng.choice(self.templates)
        if rng.random() < 0.3:
            template = f"{template.rstrip('.!?')}{rng.choice(JOINTS)}{rng.choice(self.templates)}"
        return parse_inline(re.sub(r"{(\w+)}", lambda gap: f"[{rng.choice(self.names[gap[1]])}]({gap[1]})", template))

    def sentences(self, count: int, rng: random.Random) -> list[Sentence]:
        """So many of them."""
        return [self.sentence(rng) for _ in range(count)]


def _domain(templates: str, **names: str) -> Domain:
    """From one template a line, and names parted by commas."""
    lines = tuple(line.strip() for line in templates.strip().splitlines())
    return Domain(lines, {label: tuple(name.strip() for name in own.split(",")) for label, own in names.items()})


PEOPLE = "Maria Lopez, Ken, Aisha Khan, Tom Baker, Ingrid, Chen Wei, Olga Petrova, Sam, Priya Nair, Luca Rossi, Ada"
DATES = "tomorrow, next week, tonight, this weekend, Monday morning, today, last summer, Friday, two years ago"

TRAINING = {
    "travel": _domain(
        """Book a {vehicle} from {city} to {city} {date}.
        Is there a {vehicle} to {city}?
        {traveller} flew to {city} {date} with {airline}.
        {airline} has cancelled the connection to {city}.
        We stayed in {city} and took the {vehicle} home {date}.
        {airline}, which flies to {city}, was late {date}.
        {traveller} reached {city} by {vehicle}.
        How long is {traveller} staying in {city}?
        {airline} and its staff were kind to {traveller}.""",
        city="Paris, New York, Oslo, Cape Town, Lima, Rio de Janeiro, Kyoto, Vienna, San Francisco, Cairo, Hull",
        vehicle="train, night bus, ferry, taxi, high speed train, plane, shuttle, rental car, boat",
        airline="Lufthansa, British Airways, Air France, KLM, Delta, Qatar Airways, Ryanair, Japan Airlines",
        traveller=PEOPLE,
        date=DATES,
    ),
    "music": _domain(
        """Play {song} by {artist}.
        {artist} recorded {song} for {label}.
        I want to hear some {genre} from {artist}.
        Put {song} on my list, please.
        {artist}, who wrote {song}, left {label}.
        Before {artist} came, {genre} was rare.
        The best {genre} album ever made is by {artist}, and {label} sold it.
        Who plays the {instrument} on {song}?
        {artist} learned the {instrument} as a child and now plays {genre}.""",
        song="Yesterday, Purple Rain, Imagine, Dancing Queen, Hey Jude, Billie Jean, Bad Romance, Hurt, Wonderwall",
        artist="Prince, The Beatles, Miles Davis, Abba, Johnny Cash, Lady Gaga, Oasis, Nina Simone, Bob Dylan, Sting",
        genre="jazz, hip hop, folk, heavy metal, soul, techno, country music, blues, opera, reggae",
        instrument="piano, bass guitar, trumpet, violin, drums, electric organ, flute, cello, double bass",
        label="Motown, Blue Note, Sony Music, Columbia Records, Island, Capitol, Virgin Records",
    ),
    "cooking": _domain(
        """Add {amount} of {ingredient} to the {tool}.
        {cook} makes {dish} with {ingredient}.
        Heat the {tool} and stir in the {ingredient}.
        For {dish} you need {amount} of {ingredient} and {amount} of {ingredient}.
        The {dish} was too salty, said {cook}.
        {cook}, who loves {dish}, bought {ingredient}.
        Then {ingredient} goes into the {tool}.
        Wash the {tool} before you start with the {dish}.
        {cook} forgot the {ingredient} again!""",
        ingredient="olive oil, rice, sugar, black pepper, butter, tomatoes, red onions, flour, garlic, brown lentils",
        amount="two cups, 200 grams, a pinch, one spoon, half a litre, three slices, a handful, 50 ml",
        dish="lasagne, apple pie, fish soup, curry, pancakes, chicken salad, paella, ramen, chocolate cake",
        tool="pan, large pot, oven, mixing bowl, blender, wok, baking tray, kettle",
        cook=PEOPLE,
    ),
    "office": _domain(
        """{employee} will meet {employee} in {room} {date}.
        Move the {event} to {room}.
        {company} has hired {employee} as {role}.
        The {event} with {company} is {date}.
        Tell the {role} that {room} is locked.
        {employee} built the team at {company}.
        {company}, which makes cars, sent its {role} to the {event}.
        {employee}, our new {role}, came from {company}.
        Cancel the {event} {date}.""",
        employee=PEOPLE,
        room="Room 12, the blue room, the lobby, Studio B, the main hall, Office 301, the library, the canteen",
        event="budget meeting, interview, yearly review, workshop, phone call, board meeting, training, lunch",
        role="engineer, head of sales, accountant, project manager, director, intern, legal adviser, designer",
        company="Siemens, General Electric, Toyota, Nokia, Deutsche Bank, Ikea, Intel, Acme Corporation, Shell",
        date=DATES,
    ),
    "shopping": _domain(
        """I bought a {colour} {product} at {store} for {price}.
        Does {store} sell the {product} in {colour}?
        The {product} by {brand} costs {price}.
        {brand} made only {colour} ones this year.
        Return the {product} to {store}, it is broken.
        {brand}, which belongs to {store}, launched a {product}.
        At {store} the {product} costs {price}.
        {price} is too much for a {product}!
        My {colour} {product} is from {brand}.""",
        product="jacket, running shoes, coffee machine, lamp, winter coat, laptop, kitchen table, watch, backpack",
        colour="red, dark green, blue, black, light grey, yellow, white, pale pink",
        store="Walmart, Harrods, the corner shop, Target, Whole Foods, Aldi, Marks and Spencer, the market",
        brand="Nike, Apple, Levi Strauss, Bosch, Adidas, Calvin Klein, Samsung, Philips",
        price="20 dollars, 99 euros, 5 pounds, 1,000 yen, 45 dollars, twelve euros, 300 dollars",
    ),
    "sport": _domain(
        """{team} beat {team} {score} in {stadium}.
        {player} scored twice for {team}.
        {team} lost the {competition} to {team}.
        {player} won the {competition} {date}.
        The {competition} begins {date} in {stadium}.
        It ended {score}, and {player} was hurt.
        {player}, who joined {team} {date}, passed the test.
        After the {competition} {team} went to {stadium}.
        Will {player} leave {team}?""",
        team="Real Madrid, Arsenal, the Lakers, Ajax, Boca Juniors, Bayern Munich, the Red Sox, Celtic, Benfica",
        player="Serena Williams, Messi, Usain Bolt, Megan Rapinoe, Federer, Simone Biles, Ronaldo, LeBron James",
        competition="World Cup, Champions League, Olympic final, Davis Cup, marathon, Super Bowl, US Open",
        stadium="Wembley, Camp Nou, Madison Square Garden, Old Trafford, the Maracana, Yankee Stadium",
        score="3 to 1, 2 to 0, 100 to 98, 1 to 1, 4 to 2",
        date=DATES,
    ),
}

DEV = {
    "health": _domain(
        """{doctor} gave {patient} {medicine} for the {illness}.
        Take {medicine} twice a day against {illness}.
        {patient} went to {hospital} with {illness}.
        {hospital} has no {medicine} left.
        Call {doctor} at {hospital}.
        The {illness} came back, so {patient} asked for {medicine}.""",
        doctor="Dr Brown, Doctor Singh, Dr Eva Maier, Professor Okafor, Dr Lee",
        patient="Anna, Peter Schmidt, little Joe, Fatima, Mr Jones, Rosa",
        medicine="aspirin, penicillin, cough syrup, insulin, vitamin D, eye drops",
        illness="flu, back pain, a broken arm, measles, high fever, asthma",
        hospital="Mercy Hospital, the Mayo Clinic, St Thomas, the university clinic, City Hospital",
    )
}
