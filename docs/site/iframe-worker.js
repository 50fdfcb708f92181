// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Browsers start no worker for a page that is opened as a file. There the worker of the search runs in a hidden frame, so
// that the site can be searched without a server. (The theme looks for the name IFrameWorker.)
"use strict";
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      // Resolves to the window in which the script has run.
      this.inside = new Promise((resolve, reject) => {
        const load = () => {
          const inside = this.frame.contentWindow;
          inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          const script = inside.document.createElement("script");
          script.onload = () => resolve(inside);
          script.onerror = reject;
          script.src = new URL(url, location.href).href;
          inside.document.body.append(script);
        };
        this.frame.addEventListener("load", load, { once: true });
      });
      document.body.append(this.frame);
    }
    postMessage(data) {
      this.inside.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
