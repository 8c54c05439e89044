/**
 * fauxqs, from npm: it is always installed, and the only server whose clock can be moved. https://github.com/kibertoad/fauxqs
 */
import { createRequire } from "node:module"
import { extname } from "node:path"
import { fileURLToPath } from "node:url"
import type { Server } from "./Server.ts"

const require = createRequire(import.meta.url)
const program = fileURLToPath(new URL(`./fauxqsProcess${extname(import.meta.url)}`, import.meta.url))
const { dependencies }: { readonly dependencies: { readonly fauxqs: string } } = require("../../package.json")

/** Moves its clock. Visibility, delays, deduplication and timestamps use it. */
const forward: Server["forward"] = async (port, milliseconds) => {
  const response = await fetch(`http://127.0.0.1:${port}/_clock/${milliseconds}`, { method: "POST" })
  if (!response.ok) throw new Error(`The clock of fauxqs was not moved: ${response.status}`)
}

export const server: Server = {
  name: "fauxqs",
  version: dependencies.fauxqs,
  source: "npm",
  command: process.execPath,
  args: (port) => [program, String(port)],
  forward
}
