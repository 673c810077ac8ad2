/** The programs that can capture a display. The first existing one is used. */
export function capturePrograms(platform: NodeJS.Platform): readonly string[] {
  if (platform === 'darwin') return ['/usr/sbin/screencapture']
  if (platform === 'win32') return ['powershell.exe']
  return ['maim', 'scrot']
}
