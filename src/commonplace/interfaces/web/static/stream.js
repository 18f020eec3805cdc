// The stream of events. When it breaks it is opened again, from where it was.
export function follow(after, tell) {
  let source, timer, last = after, missed = false, pause = 1000;
  function open() {
    source = new EventSource(`/events?${new URLSearchParams(last ? { after: last } : {})}`);
    source.addEventListener("open", () => {
      pause = 1000;
      if (missed) tell([]);
      missed = false;
    });
    source.addEventListener("message", ({ data, lastEventId }) => {
      last = lastEventId || last;
      tell(JSON.parse(data));
    });
    source.addEventListener("error", () => {
      if (source.readyState !== EventSource.CLOSED) return;  // the browser tries again, and says where it was
      [last, missed] = ["", true];  // it was refused, perhaps for the cursor
      timer = setTimeout(open, pause);
      pause = Math.min(2 * pause, 60_000);
    });
  }
  open();
  return () => { clearTimeout(timer); source.close(); return last; };
}
