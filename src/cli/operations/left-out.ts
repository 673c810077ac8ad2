import type { LeftOut, LeftOutCounts, LeftOutReason } from '../../providers/files/index.ts'

const reasons: Readonly<Record<LeftOutReason, string>> = {
  missing: 'it does not exist',
  name: 'its name is too long, or has a character that no URI or no name of this system can have',
  hidden: 'its name begins with a dot, and "hidden" is false',
  tools:
    'left out by default: a file of version control, of a tool or of an editor ("defaultExcludes": { "except": [its path] } serves it)',
  'secret-name': 'files of this name commonly hold secrets ("defaultExcludes": { "except": [its path] } serves it)',
  exclude: 'left out by "exclude"',
  include: 'no glob of "include" matches it',
  gitignore: 'left out by .gitignore',
  'git-directory':
    'a git directory, known by its HEAD, objects and refs ("defaultExcludes": { "except": [its path] } serves it)',
  worktree: 'another working tree of the same repository ("worktrees": true serves it)',
  'link-denied': 'a symbolic link, and "symlinks" is "deny"',
  'link-outside': 'a symbolic link that leads out of the folder',
  'link-broken': 'a symbolic link to something that does not exist, or in a loop',
  'link-circle': 'a symbolic link that leads in a loop',
  'link-target': 'a symbolic link to something that is left out',
  'link-depth': 'it lies behind too many symbolic links',
  'hard-link':
    'the file has a second name (a hard link), which may lie outside the folder ("hardlinks": true serves it)',
  'other-file-system': 'it lies on another file system ("allowMounts": true serves it)',
  'special-file': 'neither a file nor a folder, but a device, a socket or a pipe',
  'no-right': 'this user has no right to read it',
  spelling: 'the folder lists it in another spelling',
  depth: 'it lies too deep',
}

/** The reasons after a count: "3 by .gitignore". Of two forms, the first is the singular. */
const descriptions: Readonly<Record<LeftOutReason, string | readonly [one: string, several: string]>> = {
  missing: 'removed meanwhile',
  name: 'with names that no URI can hold',
  hidden: 'hidden',
  tools: 'of version control, tools or editors',
  'secret-name': 'with names that secrets have',
  exclude: 'by "exclude"',
  include: 'outside of "include"',
  gitignore: 'by .gitignore',
  'git-directory': ['git directory', 'git directories'],
  worktree: ['other working tree of the repository', 'other working trees of the repository'],
  'link-denied': ['symbolic link', 'symbolic links'],
  'link-outside': ['link that leads outside', 'links that lead outside'],
  'link-broken': ['link that leads to nothing', 'links that lead to nothing'],
  'link-circle': ['link that leads in a loop', 'links that lead in a loop'],
  'link-target': ['link to something that is left out', 'links to something that is left out'],
  'link-depth': 'behind too many links',
  'hard-link': ['hard link', 'hard links'],
  'other-file-system': 'on other file systems',
  'special-file': ['special file (a device, socket or pipe)', 'special files (devices, sockets or pipes)'],
  'no-right': ['without the right to read it', 'without the right to read them'],
  spelling: 'listed in another spelling',
  depth: 'too deep',
}

/** @param requestPath The path that the user named, which may lie below the omitted one. */
export function explainLeftOut(omission: LeftOut, requestPath = omission.path): string {
  const above =
    omission.path !== requestPath && omission.path !== `${requestPath}/` ? `${omission.path} is not served: ` : ''
  return `${above}${ruleOf(omission)}`
}

function ruleOf({ reason, line, glob, target, because }: LeftOut): string {
  if (line !== undefined)
    return `left out by ${line.file}${line.line === undefined ? '' : `:${line.line}`} \`${line.pattern}\``
  if (glob !== undefined) return `left out by "exclude": \`${glob}\``
  if (target === undefined) return reasons[reason]
  const why = because === undefined ? '' : ` (${explainLeftOut(because)})`
  return `${reasons[reason]}: ${target}${why}`
}

/** Returns a text such as `3 by .gitignore, 2 hard links`, empty if there are none. */
export function formatLeftOutCounts({ counts, complete }: LeftOutCounts): string {
  const parts = Object.entries(counts)
    .sort(([, a], [, b]) => b - a)
    .map(([reason, number]) => `${number.toLocaleString('en')} ${words(descriptions[reason as LeftOutReason], number)}`)
  if (parts.length === 0) return ''
  return `${parts.join(', ')}${complete ? '' : ', and maybe more'}`
}

function words(forms: string | readonly [one: string, several: string], number: number): string {
  if (typeof forms === 'string') return forms
  return number === 1 ? forms[0] : forms[1]
}
