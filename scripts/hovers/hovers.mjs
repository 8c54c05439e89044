/** The names in a newcomer's program that an editor cannot describe. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { parse, walk } from "../conventions/source.mjs"
import { start } from "./server.mjs"

const file = new URL("program.ts", import.meta.url)

/** Names that are the user's own, or the language's. */
const foreign = new Set(["tenant", "orders", "undecodable", "aborted", "_tag"])

/** Whole modules, of which editors show their file. */
const isModule = (name) => /^(?!.*Error$)[A-Z]/.test(name)

/** The positions of our names: options, functions, members. */
const placesOf = (text) => {
  const places = []
  const { program } = parse("program.ts", text)
  walk(program, (node) => {
    if (node.type === "ImportSpecifier") places.push(node.local)
    if (node.type === "Property" && node.key.type === "Identifier") places.push(node.key)
    if (node.type === "MemberExpression" && !node.computed) places.push(node.property)
  })
  return places.filter(({ name }) => !foreign.has(name) && !isModule(name))
}

/** Checks a folder that has the packages. Returns the number of names, and those without documentation. */
export const hovers = async (folder) => {
  const text = readFileSync(file, "utf8")
  const uri = pathToFileURL(join(folder, "hovers.mts")).href
  const server = await start(folder)
  try {
    server.open(uri, text)
    const silent = []
    const places = placesOf(text)
    for (const { name, start: offset } of places) {
      const lines = text.slice(0, offset).split("\n")
      const shown = await server.hover(uri, { line: lines.length - 1, character: lines.at(-1).length })
      if (shown === "") silent.push(`line ${lines.length}: ${name}`)
    }
    return { count: places.length, silent }
  } finally {
    server.stop()
  }
}
