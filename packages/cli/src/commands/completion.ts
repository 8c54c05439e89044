/** `requeue completion`: prints a script that lets the shell complete commands and flags. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Completions from "effect/cli/Completions"
import * as Effect from "effect/Effect"
import { Output } from "../Output.ts"

/** Makes the command. `root` is a function because the root has this command among its own. */
export const completion = (root: () => Command.Command.Any) =>
  Command.make(
    "completion",
    { shell: Argument.Literals("shell", ["bash", "zsh", "fish", "powershell"]) },
    ({ shell }) =>
      Effect.gen(function* () {
        const { result } = yield* Output
        const generated = Completions.generate("requeue", shell, Completions.fromCommand(root()))
        // A comment in the script names the command that made it.
        const script = generated.replaceAll("requeue --completions", "requeue completion")
        yield* result({ shell, script }, () => script)
      })
  ).pipe(
    Command.withDescription("Prints a script that lets the shell complete requeue's commands and flags."),
    Command.withShortDescription("Complete commands and flags in your shell"),
    Command.withExamples([
      { command: "requeue completion bash > ~/.local/share/bash-completion/completions/requeue", description: "bash" },
      { command: "requeue completion zsh > ~/.zfunc/_requeue", description: "zsh, with ~/.zfunc in fpath" },
      { command: "requeue completion fish > ~/.config/fish/completions/requeue.fish", description: "fish" },
      { command: "requeue completion powershell >> $PROFILE", description: "PowerShell" }
    ])
  )
