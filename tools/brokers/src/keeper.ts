/** Runs alongside the owner of an instance and removes the instance when the owner has died: `keeper <folder> <id>`. */
import { read, remove } from "./Instance.ts"

const [folder, id] = process.argv.slice(2)

process.stdin.resume()
process.stdin.once("close", () => {
  const record = folder === undefined ? undefined : read(folder)
  // By now the folder may belong to another instance, or to one without an owner.
  if (folder === undefined || record === undefined || record.id !== id || record.owner === undefined) return
  void remove(folder, record)
})
