/** Characters that Windows does not allow in a name: separators, the marks of drives, streams and wildcards. */
const special = /[\\/:*?"<>|]/

/** Names of devices, with or without an extension. Windows opens the device whatever the directory is. */
const device = /^(?:con|prn|aux|nul|(?:com|lpt)[0-9¹²³]|conin\$|conout\$|clock\$) *(?:[.:]|$)/i

/**
 * Whether the system takes a segment of a path as the name of one file, as it stands. On Windows a backslash leads into a folder, `:` to a stream
 * or a drive, `NUL` to a device, and dots and spaces at the end are dropped, so rules would judge another name than the one that is opened.
 */
export function isFileName(segment: string, platform: NodeJS.Platform): boolean {
  return platform !== 'win32' || !(special.test(segment) || device.test(segment) || /[. ]$/.test(segment))
}
