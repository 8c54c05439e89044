import { spawnSync } from "node:child_process"
import { assert, describe, it } from "vitest"
import { requeue } from "./requeue.ts"

/** What bash offers for a line that is being written. */
const offered = (script: string, line: string): ReadonlyArray<string> => {
  const words = line.split(" ")
  const program = `${script}
COMP_LINE=${JSON.stringify(line)}
COMP_POINT=\${#COMP_LINE}
COMP_WORDS=(${words.map((word) => JSON.stringify(word)).join(" ")})
COMP_CWORD=${words.length - 1}
_requeue
echo "\${COMPREPLY[@]}"`
  return spawnSync("bash", ["-c", program], { encoding: "utf8" }).stdout.trim().split(" ")
}

describe("requeue completion", () => {
  it.each([
    ["requeue ver", "verify"],
    ["requeue simulate --out", "--outage"],
    ["requeue plan --mer", "--mermaid"]
  ])("completes %j", async (line, expected) => {
    const { stdout } = await requeue(["completion", "bash"])
    assert.include(offered(stdout, line), expected)
  })

  it.each(["zsh", "fish", "powershell"])("has a script for %s", async (shell) => {
    const { code, stdout } = await requeue(["completion", shell])
    assert.strictEqual(code, 0)
    assert.include(stdout, "simulate")
  })

  it("is refused for another shell", async () => {
    const { code, stderr } = await requeue(["completion", "tcsh"])
    assert.strictEqual(code, 2)
    assert.include(stderr, '"bash" | "zsh" | "fish" | "powershell"')
  })
})
