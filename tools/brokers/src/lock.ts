import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { codeOf } from "./errorCode.ts"
import * as processes from "./processes.ts"

/**
 * Runs an action while no other process of this machine holds the lock. Waits for a lock while its owner lives, and takes over a
 * lock whose owner died.
 */
export const withLock = async <A>(file: string, say: (line: string) => void, action: () => Promise<A>): Promise<A> => {
  mkdirSync(dirname(file), { recursive: true })
  const own = JSON.stringify(processes.identify(process.pid))
  for (let told = false; ; ) {
    try {
      writeFileSync(file, own, { flag: "wx" })
      break
    } catch (cause) {
      if (codeOf(cause) !== "EEXIST") throw cause
    }
    if (isStale(file)) rmSync(file, { force: true })
    else {
      if (!told) say(`Waiting for the process that holds ${file} ...`)
      told = true
      await sleep(200)
    }
  }
  try {
    return await action()
  } finally {
    rmSync(file, { force: true })
  }
}

const isStale = (file: string): boolean => {
  try {
    const owner: processes.Identity = JSON.parse(readFileSync(file, "utf8"))
    return !processes.isAlive(owner)
  } catch {
    // The file is gone, or is being written.
    return false
  }
}
