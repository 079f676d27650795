// The chat page: what happens when it is opened.

document.querySelector("#app")!.append("Troodon");
