/** A copy of this checkout with uncommitted changes, as a separate repository, where a release changes nothing here. */
import { execFileSync } from "node:child_process"
import { cpSync, existsSync } from "node:fs"
import { join } from "node:path"
import { home, must } from "../pack/project.mjs"
import { root } from "../workspace.mjs"

/** Runs git in a folder; returns its output. */
export const git = async (folder, ...args) => (await must("git", args, folder)).stdout.trim()

/** Makes the copy; returns its folder. */
export const copyOfCheckout = async () => {
  const folder = join(home, "checkout")
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 100_000_000
  })
  for (const file of listed.split("\0").filter((name) => name !== "" && existsSync(join(root, name))))
    cpSync(join(root, file), join(folder, file))
  await git(folder, "init", "--quiet", "--initial-branch=main")
  await git(folder, "config", "user.name", "Rehearsal")
  await git(folder, "config", "user.email", "rehearsal@example.com")
  await commit(folder, "the checkout")
  return folder
}

/** Commits everything in the copy. */
export const commit = async (folder, message) => {
  await git(folder, "add", "--all")
  await git(folder, "commit", "--quiet", "--message", message)
}
