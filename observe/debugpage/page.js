// The page is whole without this script, which only keeps it up to date.
"use strict";

const status = document.getElementById("live");
const source = new EventSource("events" + location.search);

source.addEventListener("open", () => { status.textContent = "live"; });
source.addEventListener("error", () => {
  status.textContent = source.readyState === EventSource.CLOSED ? "not live: reload the page" : "connecting";
});
source.addEventListener("section", event => {
  const section = JSON.parse(event.data);
  const place = document.getElementById(section.id);
  if (place) place.innerHTML = section.html;
});
