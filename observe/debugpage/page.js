// The page is whole without this script, which only keeps it up to date.
"use strict";

const status = document.getElementById("live");
const pause = document.getElementById("pause");
let source = null; // null while the page is paused

function follow() {
  source = new EventSource("events" + location.search);
  source.addEventListener("open", () => { status.textContent = "live"; });
  source.addEventListener("error", event => {
    status.textContent = event.target.readyState === EventSource.CLOSED ? "not live: reload the page" : "connecting";
  });
  source.addEventListener("section", event => {
    const section = JSON.parse(event.data);
    const place = document.getElementById(section.id);
    if (place) place.innerHTML = section.html;
  });
}

pause.hidden = false;
pause.addEventListener("click", () => {
  if (source) {
    source.close();
    source = null;
    status.textContent = "paused at " + new Date().toISOString().slice(11, 19) + " UTC";
    pause.textContent = "Go on";
  } else {
    status.textContent = "connecting";
    pause.textContent = "Pause";
    follow();
  }
});

follow();
