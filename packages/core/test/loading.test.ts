import { execFileSync } from "node:child_process"
import { assert, describe, it } from "@effect/vitest"

/** What an entry loads of Effect besides what `effect/Effect` does, in a process of its own; not Effect's internals. */
const loadedWith = (entry: string): ReadonlyArray<string> => {
  const program = `
    import { registerHooks } from "node:module"
    await import("effect/Effect")
    const names = []
    const load = (url, context, next) => {
      const name = /\\/effect\\/dist\\/(?!internal\\/|crypto\\/)(.+)\\.js$/.exec(url)?.[1]
      if (name !== undefined) names.push(name)
      return next(url, context)
    }
    registerHooks({ load })
    await import(${JSON.stringify(new URL(`../src/${entry}.ts`, import.meta.url).href)})
    console.log(JSON.stringify(names.toSorted()))`
  const args = ["--no-warnings", "--input-type=module", "--eval", program]
  return JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8", cwd: import.meta.dirname }))
}

// Each is small and loads next to nothing. Schema, Stream, FileSystem, Config, Logger, Queue or Random would load more.
const known = ["Fiber", "Latch", "ManagedRuntime", "Redacted", "Semaphore"]

describe("what is loaded of Effect", () => {
  it.each(["index", "promise", "port"])("by %s is little more than effect/Effect", (entry) =>
    assert.isEmpty(loadedWith(entry).filter((name) => !known.includes(name)))
  )

  it("by schema is Schema, which is why it has an entry of its own", () =>
    assert.include(loadedWith("schema"), "Schema"))
})
