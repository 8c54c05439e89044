/** Debian's packages: installed on Debian, or in a separate tree for the version of another release. */
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { Unavailable } from "./Broker.ts"
import { home } from "./Instance.ts"
import { run } from "./installer.ts"
import { withLock } from "./lock.ts"

const command = (name: string, ...args: ReadonlyArray<string>): Promise<void> =>
  run(name, args, { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1", LC_ALL: "C.UTF-8" })

const needsRootOnDebian = () => {
  if (!existsSync("/etc/debian_version") || !existsSync("/usr/bin/apt-get")) throw new Unavailable("this is not Debian")
  if (process.getuid?.() !== 0) throw new Unavailable("this user is not root")
}

// Without this policy a package's server would start at once, on its usual ports and open to all networks.
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
    say(`Installing ${name} from Debian, once ...`)
    const began = performance.now()
    const get = () => command("apt-get", "install", "--yes", "--no-install-recommends", name)
    // The lists of packages may be missing or old.
    const getFresh = async () => {
      await command("apt-get", "update")
      await get()
    }
    await withoutServices(() => get().catch(getFresh))
    say(`Installed ${name} in ${Math.round((performance.now() - began) / 1000)} s`)
  })
}

/** The folder of a tree. */
export const treeOf = (release: string, name: string): string => home("debian", `${release}-${name}`)

/** Makes a tree, which is a folder with a minimal Debian of a release and one package, unless it exists. */
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
    // Then names such as localhost have the same meaning inside the tree.
    copyFileSync("/etc/hosts", `${partial}/etc/hosts`)
    rmSync(`${partial}/var/cache/apt/archives`, { recursive: true, force: true })
    renameSync(partial, tree)
    say(`Made in ${Math.round((performance.now() - began) / 1000)} s`)
  })
  return tree
}
