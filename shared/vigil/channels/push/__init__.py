"""The channel `push`: notifications in browsers, also with every page closed (Web Push).

What is sent says :mod:`.notification`, to whom :mod:`.subscriptions`; :mod:`.seal` encrypts it for
one browser (RFC 8291), :mod:`.vapid` says who sends (RFC 8292), and :mod:`.sender` makes the try
(RFC 8030).
"""
