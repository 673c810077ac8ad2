/** What one child process may take from the machine. All of it is set by the child itself before it begins to work. */
export interface ChildLimits {
  /**
   * How much memory it may allocate, in bytes (RLIMIT_DATA of setrlimit(2), Linux 4.7 and newer). Files that it only maps
   * do not count.
   */
  readonly memoryBytes: number
  /** How much processor time it may use, in seconds (RLIMIT_CPU). Absent where it lives long. */
  readonly cpuSeconds?: number
  /** The largest file that it may write, in bytes (RLIMIT_FSIZE). Absent for programs of the operator. */
  readonly fileBytes?: number
}

const mebibyte = 1024 * 1024
const gibibyte = 1024 * mebibyte

/** The least that `git cat-file` gets beside the objects that it holds, in bytes. */
const catFileBase = 128 * mebibyte
/** How many copies of an object `git cat-file` may hold at once: its base, the result, and what is read of the pack. */
const catFileCopies = 8
/** What git may write, in bytes: it has nothing to write. */
const gitFileBytes = mebibyte

/**
 * The limits of every kind of child process that the server starts, in one place. docs/limits.md has them for operators.
 * The functions take what the limit depends on.
 */
export const childLimits = {
  /** A git process that answers one question. */
  git: (timeoutMs: number): ChildLimits => ({
    memoryBytes: gibibyte,
    cpuSeconds: Math.ceil(timeoutMs / 1000) + 1,
    fileBytes: gitFileBytes,
  }),
  /** A long-lived `git cat-file`, which holds objects of at most `maxBytes`. */
  gitObjects: (maxBytes: number): ChildLimits => ({
    memoryBytes: catFileBase + catFileCopies * maxBytes,
    fileBytes: gitFileBytes,
  }),
  /** The process that reads a file of SQLite. Node itself takes about 100 MiB of it. */
  sqlite: (): ChildLimits => ({ memoryBytes: 512 * mebibyte, fileBytes: 0 }),
  /** A program that captures the display and writes one picture. */
  screen: (timeoutMs: number, maxBytes: number): ChildLimits => ({
    memoryBytes: 2 * gibibyte,
    cpuSeconds: Math.ceil(timeoutMs / 1000) + 1,
    // A picture over the limit is told from a program that fails.
    fileBytes: 2 * maxBytes,
  }),
  /**
   * The command of a remote mount, with all that it starts. What they hold is watched (process-group.ts): the programs are of the
   * operator's choice, live long, and may reserve more addresses than they use. Time and files are theirs.
   */
  remoteCommand: (): Pick<ChildLimits, 'memoryBytes'> => ({ memoryBytes: 4 * gibibyte }),
} as const

/** What one worker thread may take. */
export interface WorkerLimits {
  /** The memory of its JavaScript (the old generation of V8), in MiB. Beyond it, Node ends the thread. */
  readonly memoryMb: number
  /** How long one job may take, in milliseconds. Beyond it, the thread is ended. */
  readonly deadlineMs: number
}

/**
 * The limits of every kind of worker thread whose input others write. A later job starts another thread. The two threads that are not
 * here, of the store and of watches of folders, run only code of this project over what it counts itself.
 */
export const workerLimits = {
  /** Reads the text of a document, and of the sheets of a workbook. An operator can set another time. */
  documents: { memoryMb: 256, deadlineMs: 20_000 },
  /** Looks for secrets in a part of a text, of half a megabyte. */
  redaction: { memoryMb: 512, deadlineMs: 5000 },
  /** Parses a file of settings. An operator can set another time. */
  settings: { memoryMb: 512, deadlineMs: 5000 },
} as const satisfies Readonly<Record<string, WorkerLimits>>

/** The memory of PDFium in the thread that reads documents, in bytes: WebAssembly is outside of what V8 counts for a thread. */
export const pdfiumMemoryBytes = 256 * mebibyte

/** A command, as `spawn` takes it. */
export interface Command {
  readonly program: string
  readonly args: readonly string[]
}

/** POSIX counts `ulimit -f` in blocks of 512 bytes, and every shell counts `ulimit -d` in KiB. */
const [blockBytes, kibibyte] = [512, 1024]

/**
 * A command that sets limits on itself by a POSIX shell, and then becomes the program: the process keeps its id, descriptors
 * and environment. A limit that the system or the shell does not know is left out.
 *
 * @param shell The path of a POSIX shell.
 * @param program An absolute path.
 */
export function limitedCommand(
  shell: string,
  program: string,
  args: readonly string[],
  { memoryBytes, cpuSeconds, fileBytes }: ChildLimits,
): Command {
  const options = [
    `-d ${Math.ceil(memoryBytes / kibibyte)}`,
    // No memory image is written of a child that dies of its limits.
    '-c 0',
    ...(cpuSeconds === undefined ? [] : [`-t ${cpuSeconds}`]),
    ...(fileBytes === undefined ? [] : [`-f ${Math.ceil(fileBytes / blockBytes)}`]),
  ]
  const script = [...options.map((option) => `ulimit ${option} 2>/dev/null`), 'exec "$@"'].join('; ')
  return { program: shell, args: ['-c', script, 'sh', program, ...args] }
}
