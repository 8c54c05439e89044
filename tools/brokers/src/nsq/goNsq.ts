/**
 * A consumer and a producer of go-nsq, the client of NSQ's own authors, as a program for tests. `go-nsq/main.go` describes its
 * flags.
 */
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, renameSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { home } from "../Instance.ts"
import { withLock } from "../lock.ts"
import { go } from "./go.ts"

const sources = fileURLToPath(new URL("../../go-nsq", import.meta.url))

/** Returns the path of the program, which is built once. Fails with `Unavailable` without Go. */
export const goNsq = async (say: (line: string) => void = console.error): Promise<string> => {
  const digest = createHash("sha256")
  for (const file of ["main.go", "go.mod", "go.sum"]) digest.update(readFileSync(join(sources, file)))
  const program = home("go", `go-nsq-${digest.digest("hex").slice(0, 12)}`)
  if (existsSync(program)) return program
  mkdirSync(dirname(program), { recursive: true })
  await withLock(`${program}.lock`, say, async () => {
    if (existsSync(program)) return
    say(`Building a program of go-nsq with Go in ${program}, once ...`)
    await go(["build", "-buildvcs=false", "-trimpath", "-o", `${program}.partial`, "."], sources)
    renameSync(`${program}.partial`, program)
  })
  return program
}
