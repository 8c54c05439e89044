import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import * as processes from "./processes.ts"

/**
 * Runs an action of which the machine can take one at a time. A lock whose owner died is taken over; that of one who
 * lives is waited for, however long that takes.
 */
export const withLock = async <A>(file: string, say: (line: string) => void, action: () => Promise<A>): Promise<A> => {
  mkdirSync(dirname(file), { recursive: true })
  const own = JSON.stringify(processes.identify(process.pid))
  for (let told = false; ; ) {
    try {
      writeFileSync(file, own, { flag: "wx" })
      break
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw cause
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
    return !processes.isAlive(JSON.parse(readFileSync(file, "utf8")) as processes.Identity)
  } catch {
    // It went, or is being written just now.
    return false
  }
}
