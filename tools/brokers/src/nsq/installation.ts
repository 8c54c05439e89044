/** NSQ's programs on this machine: installed by its user, or built by this package with Go. */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs"
import { homedir } from "node:os"
import { delimiter, join } from "node:path"
import { Unavailable } from "../Broker.ts"
import { home } from "../Instance.ts"
import { withLock } from "../lock.ts"
import { answerTimeout } from "../ready.ts"
import { go } from "./go.ts"

export interface Installation {
  readonly version: string
  /** The folder of `nsqd` and `nsqlookupd`. */
  readonly folder: string
}

/** Finds the programs in a folder. `nsqd --version` prints `nsqd v1.3.0 (built w/go1.26.8)`. */
const inFolder = (folder: string): Installation | undefined => {
  const said = spawnSync(join(folder, "nsqd"), ["--version"], { encoding: "utf8", timeout: answerTimeout }).stdout ?? ""
  const version = /^nsqd v(\S+)/.exec(said)?.[1]
  return version === undefined || !existsSync(join(folder, "nsqlookupd")) ? undefined : { version, folder }
}

/** The installations of this machine's user. */
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

/** The installation that was built before, if any. */
export const built = (): Installation | undefined => inFolder(own())

/** Builds the release from its public module, once. */
export const build = async (say: (line: string) => void): Promise<Installation> => {
  await withLock(`${own()}.lock`, say, async () => {
    if (built() !== undefined) return
    const partial = `${own()}.partial`
    rmSync(partial, { recursive: true, force: true })
    mkdirSync(partial, { recursive: true })
    await go(["version"], partial)
    say(`Building NSQ ${release} with Go in ${own()}, once ...`)
    const began = performance.now()
    // In the module's own folder, Go uses the versions of its go.mod. `go install` would also need the list of all versions of
    // the module, which not every proxy has.
    const { stdout } = await go(["mod", "download", "-json", `github.com/nsqio/nsq@v${release}`], partial)
    const { Dir }: { readonly Dir: string } = JSON.parse(stdout)
    await go(["build", "-o", `${partial}/`, "./apps/nsqd", "./apps/nsqlookupd"], Dir)
    rmSync(own(), { recursive: true, force: true })
    renameSync(partial, own())
    say(`Built in ${Math.round((performance.now() - began) / 1000)} s`)
  })
  const found = built()
  if (found === undefined) throw new Unavailable(`Go built nothing that runs in ${own()}`)
  return found
}
