/** Debian's packages: installed where this is Debian, or in a tree beside it for the versions of other releases. */
import { execFile } from "node:child_process"
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { promisify } from "node:util"
import { Unavailable } from "./Broker.ts"
import { home } from "./Instance.ts"
import { withLock } from "./lock.ts"

const run = promisify(execFile)
const minutes = 60_000

const command = async (name: string, ...args: ReadonlyArray<string>): Promise<void> => {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1", LC_ALL: "C.UTF-8" }
  await run(name, args, { env, timeout: 30 * minutes, maxBuffer: 1 << 26 }).catch((cause: Error) => {
    const { stdout = "", stderr = "" } = cause as { stdout?: string; stderr?: string }
    const said = `${stdout}\n${stderr}`.trim().split("\n").slice(-3).join(" / ")
    throw new Unavailable(`${[name, ...args].join(" ")} failed: ${said === "" ? cause.message : said}`)
  })
}

const needsRootOnDebian = () => {
  if (!existsSync("/etc/debian_version") || !existsSync("/usr/bin/apt-get")) throw new Unavailable("this is no Debian")
  if (process.getuid?.() !== 0) throw new Unavailable("this user is not root")
}

// A package's server would start at once, on its usual ports and open to everybody. A policy that is there stays.
const policy = "/usr/sbin/policy-rc.d"
const withoutServices = async (action: () => Promise<void>): Promise<void> => {
  if (existsSync(policy)) return action()
  writeFileSync(policy, "#!/bin/sh\nexit 101\n", { mode: 0o755 })
  try {
    await action()
  } finally {
    rmSync(policy, { force: true })
  }
}

/** Installs a package of this Debian; its service is not started. */
export const install = async (name: string, say: (line: string) => void): Promise<void> => {
  needsRootOnDebian()
  await withLock(home("apt.lock"), say, async () => {
    say(`Installing ${name} from Debian ...`)
    const get = () => command("apt-get", "install", "--yes", "--no-install-recommends", name)
    // The lists may be missing or old.
    const getFresh = async () => {
      await command("apt-get", "update")
      await get()
    }
    await withoutServices(() => get().catch(getFresh))
  })
}

export const treeOf = (release: string, name: string): string => home("debian", `${release}-${name}`)

/** A folder with a minimal Debian of a release and one package, made on first use. */
export const makeTree = async (release: string, name: string, say: (line: string) => void): Promise<string> => {
  const tree = treeOf(release, name)
  if (existsSync(tree)) return tree
  needsRootOnDebian()
  if (!existsSync("/usr/sbin/debootstrap")) await install("debootstrap", say)
  await withLock(`${tree}.lock`, say, async () => {
    if (existsSync(tree)) return
    const partial = `${tree}.partial`
    rmSync(partial, { recursive: true, force: true })
    mkdirSync(partial, { recursive: true })
    say(`Making a Debian ${release} with ${name} in ${tree}: about 400 MB, once ...`)
    const began = performance.now()
    await command("debootstrap", "--variant=minbase", `--include=${name}`, release, partial)
    // Names such as localhost are to mean the same in it.
    copyFileSync("/etc/hosts", `${partial}/etc/hosts`)
    rmSync(`${partial}/var/cache/apt/archives`, { recursive: true, force: true })
    renameSync(partial, tree)
    say(`Made in ${Math.round((performance.now() - began) / 1000)} s`)
  })
  return tree
}
