/** Every command that the documentation names is there. */
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, it } from "vitest"
import { requeue } from "./requeue.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))
const pages = globSync(["*.md", "docs/**/*.md", "packages/*/*.md", "apps/*/*.md"], { cwd: root }).filter(
  (path) => !path.includes("node_modules") && !path.endsWith("CHANGELOG.md")
)

/** The commands below one, as its help lists them. */
const below = async (...path: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
  const { stdout } = await requeue([...path, "--help"])
  const [, list = ""] = stdout.split("SUBCOMMANDS\n")
  return [...list.split(/\n\s*\n/)[0]!.matchAll(/^ {2}([a-z][a-z-]*)/gm)].map(([, name]) => name!)
}

/** Code in a sentence, and lines of terminals. */
const code = (text: string): ReadonlyArray<string> => {
  const fences = [...text.matchAll(/^```(\w*).*\n([^]*?)^```$/gm)]
  const terminals = fences.filter(([, language]) => ["sh", "console"].includes(language!)).map(([, , lines]) => lines!)
  const sentences = text.replaceAll(/^```[^]*?^```$/gm, "").matchAll(/`([^`]+)`/g)
  return [...terminals.flatMap((lines) => lines.split("\n")), ...[...sentences].map(([, inline]) => inline!)]
}

it("every command that a page names is one", async () => {
  const commands = await below()
  const groups = new Map([
    ["dead-letters", await below("dead-letters")],
    ["delayed", await below("delayed")]
  ])
  assert.includeMembers([...commands], ["plan", "dead-letters"])
  assert.include(groups.get("dead-letters")!, "redrive")
  const unknown: Array<string> = []
  let named = 0
  for (const path of pages) {
    for (const line of code(readFileSync(join(root, path), "utf8"))) {
      for (const [whole, command, sub] of line.matchAll(
        /(?:\brequeue |^(?=dead-letters |delayed ))([a-z][a-z-]*)(?: ([a-z][a-z-]*))?(?![\w.:@/-])/g
      )) {
        named++
        const known = groups.get(command!)
        const isThere = commands.includes(command!) && (known === undefined || sub === undefined || known.includes(sub))
        if (!isThere) unknown.push(`${path}: ${whole}`)
      }
    }
  }
  assert.deepStrictEqual(unknown, [])
  assert.isAbove(named, 50, "commands are found")
})
