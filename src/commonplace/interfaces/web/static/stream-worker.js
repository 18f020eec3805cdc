// One stream for all tabs of a browser, which keeps no more than six connections to one server. Events are kept for a minute, for
// pages that were loaded while they came.
import { follow } from "./stream.js";

const ports = new Set();
let recent = [], started = false;

function tell(ids) {
  const at = Date.now();
  recent = [...recent.filter((each) => at - each.at < 60_000), { at, ids }];
  for (const port of ports) port.postMessage(ids);
}

self.addEventListener("connect", ({ ports: [port] }) => {
  port.addEventListener("message", ({ data: { after, since, leaves } }) => {
    if (leaves) { ports.delete(port); return; }
    ports.add(port);
    for (const { at, ids } of recent) if (at >= since) port.postMessage(ids);
    if (!started) follow(after, tell);
    started = true;
  });
  port.start();
});
