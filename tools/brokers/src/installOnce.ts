/** Downloads that happen once for this user, and by one process at a time. */
import { execFile } from "node:child_process"
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs"
import { promisify } from "node:util"
import { Unavailable } from "./Broker.ts"
import { home } from "./Instance.ts"
import { withLock } from "./lock.ts"

const execute = promisify(execFile)

/** Throws `Unavailable` if the command does not run. */
export const hasCommand = async (command: string, ...args: ReadonlyArray<string>): Promise<void> => {
  await execute(command, args).catch(() => {
    throw new Unavailable(`there is no ${command} here`)
  })
}

/** Returns the folder of this name, and fills it unless it exists. `size` is the size of the download, for the log. */
export const installOnce = async (
  name: string,
  size: string,
  say: (line: string) => void,
  fill: (folder: string) => Promise<void>
): Promise<string> => {
  const folder = home(name)
  if (existsSync(folder)) return folder
  await withLock(`${folder}.lock`, say, async () => {
    if (existsSync(folder)) return
    const partial = `${folder}.partial`
    rmSync(partial, { recursive: true, force: true })
    mkdirSync(partial, { recursive: true })
    say(`Installing ${name} in ${folder}: ${size}, once ...`)
    const began = performance.now()
    await fill(partial)
    renameSync(partial, folder)
    say(`Installed in ${Math.round((performance.now() - began) / 1000)} s`)
  })
  return folder
}
