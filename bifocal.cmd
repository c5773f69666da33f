@echo off
rem The bifocal command for Windows. Builds it on first use (remove cli\target to build it again),
rem finds a JDK 25, and runs it with the flags it needs. BIFOCAL_JAVA_OPTIONS adds flags of the JVM.
setlocal EnableExtensions DisableDelayedExpansion

set "root=%~dp0"
set "jar=%root%cli\target\bifocal.jar"
set "options=%root%cli\src\main\launcher\java.options"
set "log=%TEMP%\bifocal-build.log"
rem Not java_home: names of variables have no case, so that would empty JAVA_HOME.
set "jdk="

rem Some write quotes into the variable itself.
set "home=%JAVA_HOME%"
if defined home set "home=%home:"=%"
if defined home call :candidate "%home%"
for %%J in (java.exe) do if not "%%~$PATH:J"=="" call :candidate "%%~dp$PATH:J.."
for /d %%D in ("%USERPROFILE%\.jdks\*" "%ProgramFiles%\Java\*" "%ProgramFiles%\Eclipse Adoptium\*" "%ProgramFiles%\Microsoft\jdk*" "%ProgramFiles%\Zulu\*") do call :candidate "%%~D"
if not defined jdk (
  echo bifocal: no JDK 25 found ^(JAVA_HOME, the java on the path, %%USERPROFILE%%\.jdks, Program Files^); install one, or set JAVA_HOME to it 1>&2
  exit /b 1
)

if not exist "%jar%" call :build
if not exist "%jar%" exit /b 1

rem The Vector API announces itself on standard error, so only what runs kernels asks for it.
set "vector="
for %%C in (attend replay bench doctor) do if /i "%~1"=="%%C" set "vector=--add-modules=jdk.incubator.vector"

"%jdk%\bin\java.exe" "@%options%" %vector% %BIFOCAL_JAVA_OPTIONS% -jar "%jar%" %*
exit /b %ERRORLEVEL%

rem Takes a folder for the JDK if it is one of version 25 and none was taken before.
:candidate
if defined jdk exit /b 0
if "%~1"=="" exit /b 0
if not exist "%~1\bin\java.exe" exit /b 0
if not exist "%~1\release" exit /b 0
rem The dot stands for the quote, which would end the quotes around it.
findstr /b /r /c:"JAVA_VERSION=.25[^0-9]" "%~1\release" >nul 2>&1
if not errorlevel 1 set "jdk=%~1"
exit /b 0

:build
where mvn >nul 2>&1
if errorlevel 1 (
  echo bifocal: Maven is needed to build and is not on the path; install maven ^(3.8 or newer^) 1>&2
  exit /b 1
)
echo bifocal: building, as this is the first use 1>&2
pushd "%root%"
call mvn -B -q -Dstyle.color=never -pl cli -am package -Dmaven.test.skip=true >"%log%" 2>&1
set "failed=%ERRORLEVEL%"
popd
if not "%failed%"=="0" (
  findstr /b /c:"[ERROR]" "%log%" 1>&2
  echo bifocal: the build failed; all of it is in "%log%" 1>&2
  exit /b 1
)
exit /b 0
