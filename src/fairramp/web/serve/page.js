const form = document.querySelector("form"), output = document.querySelector("output");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  let text;
  try {
    const answer = await fetch("/decide", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: form.person.value,
    });
    text = `${answer.status} ${answer.statusText}\n${JSON.stringify(await answer.json(), null, 2)}`;
  } catch (error) {
    text = "The service does not answer.";
  }
  output.textContent = text;
});
