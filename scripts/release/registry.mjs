/**
 * A registry on 127.0.0.1 for the life of the process: Verdaccio, with its data in the folder of the projects. It has the
 * packages of this workspace that were published to it; all others come from npm's configured registry.
 */
import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { call, home, project } from "../pack/project.mjs"
import "../kept.mjs"

const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })

const configuration = (folder, outside) => ({
  storage: join(folder, "data"),
  max_body_size: "50mb",
  uplinks: { outside: { url: outside, timeout: "60s" } },
  packages: {
    "@requeue/*": { access: "$all", publish: "$all" },
    "**": { access: "$all", proxy: "outside" }
  },
  auth: { htpasswd: { file: join(folder, "htpasswd"), max_users: -1 } },
  log: { type: "stdout", format: "pretty", level: "warn" }
})

const answers = async (url) => {
  for (let attempt = 0; attempt < 300; attempt++) {
    const answer = await fetch(`${url}-/ping`).catch(() => undefined)
    if (answer?.ok) return
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  throw new Error("Verdaccio does not answer after a minute")
}

/** Starts it, and makes it the registry of npm in this process and its children. Returns its URL. */
export const startRegistry = async () => {
  const outside = (await call("npm", ["config", "get", "registry"], home)).stdout.trim()
  // It requests node-fetch by a tag, which not every registry has.
  const manifest = JSON.stringify({ name: "registry", private: true, overrides: { "node-fetch": "2.7.0" } })
  const folder = await project("registry", { "package.json": manifest }, "verdaccio@6.10.4")
  const port = await freePort()
  const url = `http://127.0.0.1:${port}/`
  writeFileSync(join(folder, "config.json"), JSON.stringify(configuration(folder, outside)))
  const program = join(folder, "node_modules", "verdaccio", "bin", "verdaccio")
  const child = spawn(process.execPath, [program, "-c", "config.json", "-l", `127.0.0.1:${port}`], {
    cwd: folder,
    stdio: "ignore"
  })
  // This process does not wait for it, and ends it before its folder is removed.
  child.unref()
  process.prependListener("exit", () => child.kill("SIGKILL"))
  await answers(url)
  const settings = join(folder, "npmrc")
  // Publishing requires a token, and any will do.
  writeFileSync(settings, `registry=${url}\n//127.0.0.1:${port}/:_authToken=rehearsal\nupdate-notifier=false\n`)
  // With a separate cache: npx reruns what it has installed under the same name and version before.
  process.env.npm_config_cache = join(home, "npm-cache")
  process.env.npm_config_userconfig = settings
  delete process.env.npm_config_registry
  return { url, settings }
}
