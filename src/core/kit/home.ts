import { homedir, userInfo } from 'node:os'
import { isAbsolute, parse } from 'node:path'

/**
 * Returns the home folder of the user: that of the environment (`HOME`, on Windows `USERPROFILE`), or of the user
 * database if that is no absolute path, or else the root of the file system.
 */
export function homeFolder(): string {
  for (const find of [homedir, () => userInfo().homedir])
    try {
      const homeFolder = find()
      if (isAbsolute(homeFolder)) return homeFolder
    } catch {
      // The system does not know this user.
    }
  return parse(process.cwd()).root
}
