/** NSQ's programs on this machine: installed by somebody, or built by Go for us. */
import { execFile, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs"
import { homedir } from "node:os"
import { delimiter, join } from "node:path"
import { promisify } from "node:util"
import { Unavailable } from "../Broker.ts"
import { home } from "../Instance.ts"
import { withLock } from "../lock.ts"
import { patience } from "../ready.ts"

export interface Installation {
  readonly version: string
  /** Where `nsqd` and `nsqlookupd` are. */
  readonly folder: string
}

const run = promisify(execFile)

/** It says `nsqd v1.3.0 (built w/go1.26.8)`. */
const inFolder = (folder: string): Installation | undefined => {
  const said = spawnSync(join(folder, "nsqd"), ["--version"], { encoding: "utf8", timeout: patience }).stdout ?? ""
  const version = /^nsqd v(\S+)/.exec(said)?.[1]
  return version === undefined || !existsSync(join(folder, "nsqlookupd")) ? undefined : { version, folder }
}

/** What somebody installed. */
export const installed = (): ReadonlyArray<Installation> => {
  const { GOBIN = "", GOPATH = "", PATH = "" } = process.env
  const ofGo = [
    GOBIN,
    ...GOPATH.split(delimiter).map((path) => path && join(path, "bin")),
    join(homedir(), "go", "bin")
  ]
  const folders = [...PATH.split(delimiter), ...ofGo].filter((folder) => folder !== "")
  return [...new Set(folders)].flatMap((folder) => inFolder(folder) ?? [])
}

/** The release that Go builds. */
export const release = "1.3.0"

const own = () => home("go", `nsq-${release}`)

/** What was built before. */
export const built = (): Installation | undefined => inFolder(own())

/** Builds the release from its public module, once. */
export const build = async (say: (line: string) => void): Promise<Installation> => {
  await withLock(`${own()}.lock`, say, async () => {
    if (built() !== undefined) return
    const go = async (args: ReadonlyArray<string>, cwd: string) => {
      const options = {
        cwd,
        timeout: 1_800_000,
        maxBuffer: 1 << 26,
        env: { ...process.env, GOFLAGS: "", GOWORK: "off" }
      }
      return run("go", args, options).catch((cause: Error & { code?: unknown; stderr?: string }) => {
        if (cause.code === "ENOENT") throw new Unavailable("there is no go command")
        throw new Unavailable(`go ${args[0]} failed: ${cause.stderr?.trim().split("\n").at(-1) || cause.message}`)
      })
    }
    const partial = `${own()}.partial`
    rmSync(partial, { recursive: true, force: true })
    mkdirSync(partial, { recursive: true })
    await go(["version"], partial)
    say(`Building NSQ ${release} with Go in ${own()}, once ...`)
    const began = performance.now()
    // In the module's own folder its own versions of what it needs hold. `go install` of it needs the list of all its
    // versions too, which not every proxy has.
    const { stdout } = await go(["mod", "download", "-json", `github.com/nsqio/nsq@v${release}`], partial)
    const { Dir } = JSON.parse(stdout) as { Dir: string }
    await go(["build", "-o", `${partial}/`, "./apps/nsqd", "./apps/nsqlookupd"], Dir)
    rmSync(own(), { recursive: true, force: true })
    renameSync(partial, own())
    say(`Built in ${Math.round((performance.now() - began) / 1000)} s`)
  })
  const found = built()
  if (found === undefined) throw new Unavailable(`Go built nothing that runs in ${own()}`)
  return found
}
