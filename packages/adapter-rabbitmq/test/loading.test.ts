/** The modules that each entry loads: a program that only consumes or publishes loads nothing that only operators need. */
import { execFileSync } from "node:child_process"
import { assert, test } from "vitest"

/** The modules of this package that an entry loads, in a separate process. */
const loadedBy = (entry: string): ReadonlyArray<string> => {
  const program = `
    import { registerHooks } from "node:module"
    const names = []
    const load = (url, context, next) => {
      const name = /\\/adapter-rabbitmq\\/src\\/(.+)\\.ts$/.exec(url)?.[1]
      if (name !== undefined) names.push(name)
      return next(url, context)
    }
    registerHooks({ load })
    await import(${JSON.stringify(new URL(`../src/${entry}.ts`, import.meta.url).href)})
    console.log(JSON.stringify(names))`
  const args = ["--conditions=@requeue/source", "--no-warnings", "--input-type=module", "--eval", program]
  return JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8", cwd: import.meta.dirname }))
}

const ofOperators = (name: string) => /^(clean|internal\/clean\/.*|internal\/inspect\/operations)$/.test(name)

test("the index does not load what lists and removes stale objects", () =>
  assert.deepStrictEqual(loadedBy("index").filter(ofOperators), []))

test("the entry clean loads it", () => assert.include(loadedBy("clean"), "internal/clean/removeGroups"))
