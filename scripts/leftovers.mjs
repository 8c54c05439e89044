/**
 * Finds the processes that a test run leaves behind. The run has a mark, an environment variable with a unique id, which every
 * process inherits. Afterwards /proc shows which processes still have it.
 */
import { existsSync, readFileSync, readdirSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"

/** The environment variable that marks the processes of a test run. */
export const runMark = "REQUEUE_TEST_RUN"

/** Clock ticks per second in /proc/PID/stat: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html */
const ticks = 100

/** Reads a file of /proc; an empty text if the process has ended or belongs to another user. */
const read = (pid, file) => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1")
  } catch {
    return ""
  }
}

/** The fields of /proc/PID/stat from the state on. The command before them may contain anything. */
const fieldsOf = (pid) => {
  const stat = read(pid, "stat")
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")
}

/** The pids of all processes that have this variable with this value in their environment. Finds none without /proc. */
export const marked = (name, value) => {
  if (!existsSync("/proc/self/environ")) return []
  const pids = readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))
  return pids.filter((pid) => read(pid, "environ").split("\0").includes(`${name}=${value}`)).map(Number)
}

/** This process and its ancestors, which have the mark as well. */
const lineage = () => {
  const pids = new Set()
  for (let pid = process.pid; pid > 0 && !pids.has(pid); pid = Number(fieldsOf(pid)[1])) pids.add(pid)
  return pids
}

const describe = (pid) => {
  const started = Number(fieldsOf(pid)[19]) / ticks
  const age = Math.round(Number.parseFloat(readFileSync("/proc/uptime", "latin1")) - started)
  return { pid, age, command: read(pid, "cmdline").replaceAll("\0", " ").trim() }
}

/**
 * Prints and returns the processes of a run that have not ended `patience` milliseconds after it. This process and its ancestors
 * do not count.
 */
export const leftovers = async (id, { patience = 60_000, print = console.error } = {}) => {
  if (!existsSync("/proc/self/environ")) {
    print("leftovers: this system has no /proc, so processes that tests leave behind are not counted")
    return []
  }
  const own = lineage()
  const find = () => marked(runMark, id).filter((pid) => !own.has(pid))
  let pids = find()
  for (const end = performance.now() + patience; pids.length > 0 && performance.now() < end; pids = find()) {
    await sleep(100)
  }
  // A process that has ended since then has no command line any more.
  const left = pids.map(describe).filter(({ command }) => command !== "")
  for (const { age, command, pid } of left) print(`left behind: process ${pid}, ${age} s old: ${command}`)
  return left.map(({ command, pid }) => ({ pid, command }))
}
