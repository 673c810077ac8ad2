@rem npm start says "exec", which is a word of POSIX shells: so signals to npm reach the server. Windows finds this file instead.
@%*
