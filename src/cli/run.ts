import { CommanderError } from 'commander'
import { commandForSynonym, createProgram, replacementHints, welcome } from './program.ts'
import { exitCodes, explainError } from './terminal/exit.ts'
import { createIo, outputClosedError, type ProcessIo, type Sharing, writeError } from './terminal/io.ts'
import { secretsOfProcess } from './terminal/secrets.ts'

export async function runCommandLine(words: readonly string[], io: ProcessIo): Promise<number> {
  const [first] = words
  // Nothing goes to stdout, which a host would parse as the protocol.
  if (first === undefined) {
    writeError(welcome(io.saysToTerminal))
    return exitCodes.usage
  }
  if (first === '__complete') {
    const { completeLine } = await import('./operations/complete-line.ts')
    await completeLine(words.slice(1), io)
    return exitCodes.ok
  }
  if (words.length === 2 && /^(?:-V|--version)$/.test(first) && words[1] === '--check') return checkVersion(io)
  const replacement = Object.hasOwn(replacementHints, first) ? replacementHints[first] : undefined
  if (replacement !== undefined) {
    io.complain(replacement)
    return exitCodes.usage
  }
  const suggestion = commandForSynonym(first)
  if (suggestion !== undefined) {
    io.complain(`unknown command '${first}'\n(Did you mean ${suggestion}?)\n\nFor help: hikidashi ${suggestion} --help`)
    return exitCodes.usage
  }
  try {
    const program = await createProgram(io, (name) => words.includes(name), first)
    await program.parseAsync([...words], { from: 'user' })
    return exitCodes.ok
  } catch (error) {
    if (error === outputClosedError) return exitCodes.ok
    // commander has already printed its message.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
    const { message, exitCode } = explainError(error)
    io.complain(message)
    return exitCode
  }
}

async function checkVersion(io: ProcessIo): Promise<number> {
  const [{ printNewestVersion, registryUrlIn }, { isPublished, packageVersion }] = await Promise.all([
    import('./operations/newest.ts'),
    import('./operations/command-line.ts'),
  ])
  const installed = { version: packageVersion(), isPublished: isPublished(), registry: registryUrlIn(process.env) }
  try {
    await printNewestVersion(installed, io)
    return exitCodes.ok
  } catch (error) {
    const { message, exitCode } = explainError(error)
    io.complain(message)
    return exitCode
  }
}

/** Ends the process after the command. With `sharing`, processes of other hosts can join this one. */
export async function runAndExit(sharing?: Sharing): Promise<never> {
  const words = process.argv.slice(2)
  const io = createIo(secretsOfProcess(), sharing)
  // Without a listener, Node would print uncaught errors with their stack. A command may have its own.
  for (const event of ['uncaughtException', 'unhandledRejection'] as const)
    process.on(event, (error: unknown) => {
      if (process.listenerCount(event) > 1) return
      io.complain(explainError(error).message)
      process.exit(exitCodes.failed)
    })

  // Sockets and timers of libraries would keep the process alive.
  return process.exit(await runCommandLine(words, io))
}
