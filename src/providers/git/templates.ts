import type { Template } from '../../core/provider.ts'
import { pageType } from './text.ts'

/** URI templates besides the listed resources. Names of refs may contain slashes, hence `{+ref}`. */
export const templates: readonly Template[] = [
  {
    template: '{+ref}/{+path}',
    name: 'File at a ref',
    title: 'A file as it is at a branch, tag or commit',
    description:
      'ref is HEAD, a branch, a tag, or a commit id; refs/heads/… and refs/tags/… always work. A path that ends in / is a directory.',
  },
  {
    template: 'log{?path,since,until,author,limit,ref}',
    free: ['since', 'until', 'limit'],
    name: 'Log',
    title: 'The history of a ref, or of a path at it',
    description:
      'Commits, newest first, a line each: id, date, author, refs, subject. since and until take 2026-11-21 or "2 weeks"; author a part of a name or address; limit is 100 unless told.',
    mimeType: pageType,
  },
  {
    template: 'commits/{sha}',
    name: 'Commit',
    title: 'One commit: message, author, changes, patch',
    description: 'sha is a commit id, or its first seven or more digits, as logs show them.',
    mimeType: pageType,
  },
  {
    template: 'diff/{+from}/{+to}{?path}',
    name: 'Diff',
    title: 'What changed between two refs or commits',
    description:
      'The files with the number of lines, and the patch from one to the other; of one path, where it is given.',
    mimeType: pageType,
  },
  {
    template: 'blame/{+ref}/{+path}',
    name: 'Blame',
    title: 'Who last changed each line of a file, in which commit',
    mimeType: pageType,
  },
]
