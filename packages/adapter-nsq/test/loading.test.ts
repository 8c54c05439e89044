/** The modules of Node that the adapter loads. */
import { execFileSync } from "node:child_process"
import { assert, test } from "vitest"

test("the index does not load Node's WebSocket client, which an import of node:http loads", () => {
  const index = new URL("../src/index.ts", import.meta.url).href
  const program = `await import(${JSON.stringify(index)}); console.log(process.moduleLoadList.join("\\n"))`
  const args = ["--conditions=@requeue/source", "--no-warnings", "--input-type=module", "--eval", program]
  const loaded = execFileSync(process.execPath, args, { encoding: "utf8", cwd: import.meta.dirname }).split("\n")
  assert.include(loaded, "NativeModule http")
  assert.notInclude(loaded, "NativeModule internal/deps/undici/undici")
})
