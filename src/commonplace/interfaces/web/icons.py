"""Line drawings of 20 by 20; colour and width come from the style sheet."""

ICONS = {
    "library": '<path d="M4 4v12M8 4v12M12 5l3.5 11"/><path d="M2.5 16.5h15"/>',
    "search": '<circle cx="9" cy="9" r="5.2"/><path d="m13 13 4 4"/>',
    "add": '<path d="M10 4v12M4 10h12"/>',
    "work": '<path d="m3.5 5.5 1.5 1.5 2.5-3M3.5 13.5l1.5 1.5 2.5-3M10.5 6h6M10.5 14h6"/>',
    "graph": '<circle cx="5" cy="6" r="2"/><circle cx="15" cy="5" r="2"/>'
    '<circle cx="11" cy="15" r="2"/>'
    '<path d="m7 6 6-.7M6 7.8l4 5.5M14.2 6.9l-2.4 6.2"/>',
    "disks": '<circle cx="10" cy="10" r="6.5"/><circle cx="10" cy="10" r="1.8"/>',
    "review": '<path d="M4 4.5h12v9H9l-3.5 3v-3H4z"/>',
    "folder": '<path d="M2.5 5.5h5l1.5 2h8.5v8.5h-15z"/>',
    "token": '<circle cx="7" cy="12.5" r="3"/><path d="m9.2 10.3 6.3-6.3M13 6.5l2 2"/>',
    "connect": '<path d="M8 12 12 8M7 9.5 5 11.5a2.5 2.5 0 0 0 3.5 3.5l2-2'
    'M13 10.5l2-2A2.5 2.5 0 0 0 11.5 5l-2 2"/>',
    "health": '<path d="M2.5 10.5h4l2-5 3 9 2-4h4"/>',
    "account": '<circle cx="10" cy="7" r="3"/><path d="M4 16.5c.8-3 3-4.5 6-4.5s5.2 1.5 6 4.5"/>',
    "people": '<circle cx="7.5" cy="7" r="2.6"/><path d="'
    'M2.5 16c.6-2.8 2.4-4.2 5-4.2s4.4 1.4 5 4.2"/>'
    '<path d="M12.5 4.6a2.6 2.6 0 0 1 0 4.8M14.4 12.2c1.6.5 2.7 1.8 3.1 3.8"/>',
    "back": '<path d="M16.5 10h-13M8.5 5l-5 5 5 5"/>',
    "turn": '<path d="m6.5 7.5 3.5-3.5 3.5 3.5M6.5 12.5l3.5 3.5 3.5-3.5"/>',
    "menu": '<path d="M3.5 6h13M3.5 10h13M3.5 14h13"/>',
    "page": '<path d="M5 3h7l3.5 3.5V17H5z"/><path d="M12 3v3.5h3.5"/>',
    "link": '<circle cx="10" cy="10" r="6.5"/><path d="M3.5 10h13M10 3.5c2.5 2 2.5 11 0 13'
    'M10 3.5c-2.5 2-2.5 11 0 13"/>',
    "text": '<path d="M4 5h12M4 9h12M4 13h7"/>',
    "sound": '<path d="M4 8v4M7 5.5v9M10 7.5v5M13 4.5v11M16 8v4"/>',
    "archive": '<path d="M3 4.5h14V8H3zM4 8v8h12V8M8 11h4"/>',
    "trash": '<path d="M3.5 5.5h13M8 5V3.5h4V5M5 5.5l1 11h8l1-11"/>',
    "tag": '<path d="M3 3h6l8 8-6 6-8-8z"/><circle cx="6.5" cy="6.5" r=".8"/>',
    "close": '<path d="m5 5 10 10M15 5 5 15"/>',
    "out": '<path d="M8 5H4v11h11v-4M11 4h5v5M16 4l-7 7"/>',
    "again": '<path d="M16 10a6 6 0 1 1-2-4.5M16 3v3.5h-3.5"/>',
    "undo": '<path d="M4 8h8a4 4 0 0 1 0 8H8M7.5 4.5 4 8l3.5 3.5"/>',
    "copy": '<path d="M7 7h9v9H7z"/><path d="M13 7V4H4v9h3"/>',
    "down": '<path d="M10 3.5v9M6.5 9.5l3.5 3.5 3.5-3.5M4 16.5h12"/>',
    "eye": '<path d="M2.5 10C4.5 6.5 7 5 10 5s5.5 1.5 7.5 5c-2 3.5-4.5 5-7.5 5s-5.5-1.5-7.5-5z"/>'
    '<circle cx="10" cy="10" r="2"/>',
    "edit": '<path d="M4 16l.8-3.6L13.2 4l2.8 2.8-8.4 8.4zM11.6 5.6l2.8 2.8"/>',
    "check": '<path d="m4 10.5 4 4 8-9"/>',
    "keys": '<path d="M2.5 5.5h15v9h-15zM5.5 8.5h.01M8.5 8.5h.01M11.5 8.5h.01M14.5 8.5h.01'
    'M6.5 11.7h7"/>',
}
