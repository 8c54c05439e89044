/** Brokers that cannot be connected to; no error shows a password. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigurationError, connect } from "@requeue/core/promise"
import { execFile } from "node:child_process"
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const refusal = async (broker: unknown): Promise<ConfigurationError> => {
  const error = await connect(broker as string).then(
    () => assert.fail("it was accepted"),
    (error: unknown) => error
  )
  assert.instanceOf(error, ConfigurationError)
  return error
}

describe("connect", () => {
  it.each<readonly [unknown, string]>([
    ["", `url: the broker is no URL. Use a URL such as "memory:"`],
    ["localhost", `url: the broker is no URL. Use a URL such as "memory:"`],
    [
      undefined,
      `url: the broker must be a URL, an object with a url, or a Layer, got undefined. Pass a URL such as "memory:"`
    ],
    [null, `url: the broker must be a URL, an object with a url, or a Layer, got null. Pass a URL such as "memory:"`],
    [
      { URL: "memory:" },
      `url: the broker must be a URL, an object with a url, or a Layer, got object. Pass a URL such as "memory:"`
    ],
    ["memory:?maxMessages=many", `maxMessages (broker memory): must be a whole number >= 1, got "many".`],
    ["memory:?maxMesages=5", "maxMesages (broker memory): unknown parameter; known are maxMessages and maxBodySize."]
  ])("%o", async (broker, message) => {
    assert.include((await refusal(broker)).message, message)
  })

  it("a scheme that no adapter serves", async () => {
    const { message } = await refusal("gopher://localhost")
    assert.include(message, "url: no adapter serves the scheme gopher:. Use one of memory:")
    assert.include(message, "or pass an adapter's Layer")
  })

  it.each(["gopher://user:hunter2@host", "memory://user:hunter2@host", "gopher://user:hunter2@bad host", "hunter2"])(
    "shows nothing of %s that is secret",
    async (url) => {
      const error = await refusal(url)
      for (const shown of [error.message, String(error), JSON.stringify(error), error.stack ?? ""]) {
        assert.notInclude(shown, "hunter2")
      }
    }
  )
})

/** A program with core among its dependencies, and the given adapter in place of the real one. */
const program = async (adapter: string | undefined): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "requeue-"))
  try {
    const modules = join(folder, "node_modules", "@requeue")
    await mkdir(modules, { recursive: true })
    const core = dirname(fileURLToPath(import.meta.resolve("@requeue/core/package.json")))
    await symlink(core, join(modules, "core"))
    if (adapter !== undefined) {
      const manifest = { name: "@requeue/adapter-memory", type: "module", exports: "./index.js" }
      await mkdir(join(modules, "adapter-memory"))
      await writeFile(join(modules, "adapter-memory", "package.json"), JSON.stringify(manifest))
      await writeFile(join(modules, "adapter-memory", "index.js"), adapter)
    }
    const main = join(folder, "main.mjs")
    await writeFile(
      main,
      `import { connect } from "@requeue/core/promise"
      await connect("memory:").catch(({ name, message }) => console.log(name + ": " + message))`
    )
    // Started from elsewhere, as a service manager does, and with nothing that package managers add to the search.
    const options = { cwd: tmpdir(), env: {}, timeout: 100_000 }
    const { stdout } = await promisify(execFile)(process.execPath, [...process.execArgv, main], options)
    return stdout.trim()
  } finally {
    await rm(folder, { recursive: true })
  }
}

describe("an adapter", () => {
  it("that is not installed: which one, and how to", async () => {
    assert.strictEqual(
      await program(undefined),
      "ConfigurationError: url: the adapter for memory: is not installed. Run: npm install @requeue/adapter-memory"
    )
  })

  it("that is installed is found from the program's main file, and its own failure is shown as it is", async () => {
    assert.match(await program(`import "missing-driver"`), /^Error: Cannot find package 'missing-driver' imported from/)
  })
})
