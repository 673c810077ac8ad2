/** Codes by message for errors of a statement with several rows: the library gives them no code. */
const codes: Readonly<Record<string, number>> = {
  'access permission denied': 3,
  'database is locked': 5,
  'database table is locked': 6,
  'out of memory': 7,
  'attempt to write a readonly database': 8,
  'disk I/O error': 10,
  'database disk image is malformed': 11,
  'database or disk is full': 13,
  'unable to open database file': 14,
  'string or blob too big': 18,
  'file is not a database': 26,
}

/** Returns the extended result code of SQLite for an error. `undefined`: it is not an error of SQLite. */
export function sqliteResultCode(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined
  const { code, errcode, sqliteExtendedCode } = error as Error & Readonly<Record<string, unknown>>
  if (typeof sqliteExtendedCode === 'number' && sqliteExtendedCode !== 0) return sqliteExtendedCode
  if (typeof errcode === 'number') return errcode
  // The store writes no such number, so the row is damaged.
  if (code === 'ERR_OUT_OF_RANGE') return 11
  return code === 'ERR_SQLITE_ERROR' ? (codes[error.message] ?? 1) : undefined
}

export function systemCodeOf(error: unknown): string | undefined {
  if (!(error instanceof Error && 'code' in error && 'syscall' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}

/** Causes for which the native part of SQLite cannot be loaded, by the message of the error, with the advice. */
const loadFaults: readonly (readonly [pattern: RegExp, why: (name: string) => string])[] = [
  [
    /(GLIBC_[\d.]+)['’]? not found/,
    (name) => `it needs ${name.replace('_', ' ')}, and the C library of this system is older. Use a newer system.`,
  ],
  [
    /failed to map segment|operation not permitted|permission denied/i,
    () =>
      'this system loads no programs from the folder of hikidashi. Install hikidashi where this user may read it, on a file system that is mounted without noexec.',
  ],
  [
    /(?:Error loading shared library )?(\S+): (?:cannot open shared object file|No such file)/,
    (name) => `the library ${name} is missing. Install it.`,
  ],
  [
    /(?:no native build|no build of SQLite)/i,
    () => `there is no build of it for ${process.platform} on ${process.arch}.`,
  ],
]

/** Returns why the native part of SQLite cannot be loaded, as the end of a sentence; `undefined` for any other error. */
export function loadFaultOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  for (const [pattern, why] of loadFaults) {
    const match = pattern.exec(error.message)
    if (match !== null) return why(match[1] ?? '')
  }
  if (!('code' in error && error.code === 'ERR_DLOPEN_FAILED')) return undefined
  // The message begins with the path of the file.
  const [, message] = /^.*: ([^/\n]+)$/m.exec(error.message) ?? []
  return `the system refuses it${message === undefined ? '' : ` (${message})`}.`
}
