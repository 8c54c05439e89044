import { readFileSync } from "node:fs"
import { assert, it } from "vitest"
import { hooks, without } from "../src/contenders/memory/telemetryHooks.ts"

it.each(Object.keys(hooks))("%s has all the places that are taken out, and they go", (file) => {
  const text = readFileSync(new URL(`../../packages/core/src/consume/internal/${file}`, import.meta.url), "utf8")
  const changed = without(file, text)
  for (const [from] of hooks[file]!) assert.notInclude(changed, from)
  assert.throws(() => without(file, changed), "has no")
})
