/** A server for the files of a built site, on this machine only. */
import { createReadStream } from "node:fs"
import { createServer } from "node:http"
import { extname, join } from "node:path"

const types = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".json": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2"
}

/** Serves `files`, paths below `folder`; resolves with the address. */
export const serve = (folder, files, base, port) => {
  const server = createServer(({ url }, response) => {
    const { pathname } = new URL(url, "http://localhost")
    const path = pathname.startsWith(base) ? decodeURI(pathname.slice(base.length)) : undefined
    const file = [path, path === "" ? "index.html" : `${path}index.html`].find((name) => files.has(name))
    const found = file ?? "404.html"
    response.writeHead(file === undefined ? 404 : 200, { "content-type": types[extname(found)] ?? "text/plain" })
    createReadStream(join(folder, found)).pipe(response)
  })
  return new Promise((resolve, reject) => {
    server.once("error", reject)
    server.listen(port, "127.0.0.1", () => resolve(`http://127.0.0.1:${server.address().port}${base}`))
  })
}
