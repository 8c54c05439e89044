/** The compiler's language server, as editors start it: what it shows at a position. */
import { spawn } from "node:child_process"
import { pathToFileURL } from "node:url"
import "../kept.mjs"

const patience = 60_000

/** Starts one in a folder. `hover` returns the documentation at a position, without the declaration above it. */
export const start = async (folder) => {
  const child = spawn("tsc", ["--lsp", "--stdio"], { cwd: folder, timeout: patience })
  const waiting = new Map()
  let buffer = Buffer.alloc(0)
  let last = 0

  const write = (message) => {
    const text = JSON.stringify({ jsonrpc: "2.0", ...message })
    child.stdin.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`)
  }
  const ask = (method, params) =>
    new Promise((resolve, reject) => {
      waiting.set(++last, { resolve, reject })
      write({ id: last, method, params })
    })
  const receive = ({ error, id, method, result }) => {
    // The server asks for its configuration, and gets none.
    if (method !== undefined) return id === undefined ? undefined : write({ id, result: null })
    const asked = waiting.get(id)
    waiting.delete(id)
    if (error === undefined) asked?.resolve(result)
    else asked?.reject(new Error(error.message))
  }
  child.stdout.on("data", (chunk) => {
    buffer = Buffer.concat([buffer, chunk])
    for (;;) {
      const end = buffer.indexOf("\r\n\r\n")
      const length = Number(/Content-Length: (\d+)/i.exec(buffer.subarray(0, end).toString())?.[1])
      if (end === -1 || buffer.length < end + 4 + length) return
      const body = buffer.subarray(end + 4, end + 4 + length).toString()
      buffer = buffer.subarray(end + 4 + length)
      receive(JSON.parse(body))
    }
  })
  child.on("close", () => waiting.forEach(({ reject }) => reject(new Error("the language server ended"))))

  const rootUri = pathToFileURL(folder).href
  await ask("initialize", {
    processId: process.pid,
    rootUri,
    capabilities: { textDocument: { hover: { contentFormat: ["markdown"] } } }
  })
  write({ method: "initialized", params: {} })

  return {
    open: (uri, text) =>
      write({
        method: "textDocument/didOpen",
        params: { textDocument: { uri, languageId: "typescript", version: 1, text } }
      }),
    hover: async (uri, position) => {
      const shown = await ask("textDocument/hover", { textDocument: { uri }, position })
      const text = shown?.contents?.value ?? ""
      return text.replaceAll(/```[\s\S]*?```/g, "").trim()
    },
    stop: () => child.kill()
  }
}
