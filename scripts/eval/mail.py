"""Prints the messages of a mail, a mailbox or a saved page as Python's own library reads them: headers, text, names of attachments."""

import email
import email.policy
import html.parser
import mailbox
import sys

unseen = {"head", "script", "style", "template", "noscript"}


class Page(html.parser.HTMLParser):
    """The text of a page."""

    def __init__(self):
        super().__init__()
        self.depth = 0
        self.text = []

    def handle_starttag(self, tag, attrs):
        self.depth += tag in unseen
        self.text.append(" " if tag in ("b", "i", "span", "a", "font", "wbr") else "\n")

    def handle_endtag(self, tag):
        self.depth = max(0, self.depth - (tag in unseen))

    def handle_data(self, data):
        if self.depth == 0:
            self.text.append(data)


def text_of(part):
    try:
        text = part.get_content()
    except (LookupError, KeyError):
        # An encoding that Python does not know.
        text = part.get_payload(decode=True).decode("utf-8", "replace")
    if part.get_content_subtype() != "html":
        return text
    page = Page()
    page.feed(text)
    return "".join(page.text)


def show(message):
    for name in ("Subject", "From", "To", "Cc"):
        if message[name] is not None:
            print(message[name])
    body = message.get_body(("html", "plain"))
    if body is not None:
        print(text_of(body))
    for part in message.iter_attachments() if message.is_multipart() else []:
        print(part.get_filename() or "")
        if part.get_content_type() == "message/rfc822":
            show(part.get_content())


def parse(file):
    return email.message_from_binary_file(file, policy=email.policy.default)


sys.stdout.reconfigure(encoding="utf-8", errors="replace")
path = sys.argv[1]
with open(path, "rb") as file:
    is_mailbox = file.read(5) == b"From "
    file.seek(0)
    if not is_mailbox:
        show(parse(file))
if is_mailbox:
    for message in mailbox.mbox(path, factory=parse, create=False):
        show(message)
